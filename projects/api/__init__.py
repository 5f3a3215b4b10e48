"""REST doors of books: projects, imports, chapters, sentences, takes, voices."""
