"""How an operation ended: `ok`, `failed` or `unknown`; `hit`, `miss` (both ok as well) and `wrong` (failed) are of gets."""

OK, HIT, MISS, WRONG, FAILED, UNKNOWN = "ok", "hit", "miss", "wrong", "failed", "unknown"


class UnknownOutcome(Exception):
    """Raise it when an operation may or may not have been carried out."""
