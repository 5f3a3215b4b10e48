"""Every write on books: one transaction each, called by doors and actors."""
