"""The turn loop of a conversation with a model: what is asked, what a reply means, when it ends. Calls nobody."""
