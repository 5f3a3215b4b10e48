"""Performance claims, each by a program that anybody can run again."""
