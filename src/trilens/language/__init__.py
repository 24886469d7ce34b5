"""Language models that write texts: behind an address with OpenAI's API, or local ones."""
