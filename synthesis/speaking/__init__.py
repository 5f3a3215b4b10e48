"""An order filled without a database: wire forms, inference client, object store, conveyor, the synthesis actor.

Pure of Django: a synthesis worker needs neither the app nor its database.
"""
