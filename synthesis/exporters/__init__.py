"""From a planned book to files people can play: one file per format behind the protocol in base. No Django."""
