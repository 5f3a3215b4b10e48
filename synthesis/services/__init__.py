"""What binds the flow to the ORM, and every write on conversions and exports."""
