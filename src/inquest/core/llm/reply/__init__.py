"""What a reply of a model says, read leniently and checked. Text of a model is data."""
