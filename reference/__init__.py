"""The reference: the one marked source. exercises_en/ is generated from it."""
