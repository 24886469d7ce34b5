"""Why a document got its score: parts that add up to it."""
