"""Importers: manuscripts of every kind into parsed books. Pure: no Django, no writes, no network."""
