"""What people read: tables and explanations, as text."""
