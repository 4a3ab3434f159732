package stepladder.inflight;

/** Says that an operation may or may not have been carried out. */
public class UnknownOutcome extends RuntimeException {
    private static final long serialVersionUID = 1;

    public UnknownOutcome(String message) {
        super(message);
    }
}
