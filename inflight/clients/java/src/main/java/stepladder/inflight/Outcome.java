package stepladder.inflight;

/** How an operation ended. HIT, MISS and WRONG are of gets: the first two are OK as well, and WRONG counts as failed. */
public enum Outcome {
    OK,
    HIT,
    MISS,
    WRONG,
    FAILED,
    UNKNOWN
}
