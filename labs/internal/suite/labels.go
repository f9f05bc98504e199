package suite

// The Ginkgo labels of a spec.
const (
	// LabLabel begins the label that carries a lab's number.
	LabLabel = "lab:"
	// CheckLabel begins the label that carries a check's id.
	CheckLabel = "check:"
)

// ManagerLogs is the pattern of the artifacts that hold what the managers printed.
const ManagerLogs = "manager*.log"

// The causes that stand for the whole run, or come from what many checks share.
const (
	// CauseBlocked is the cause of a check that was given up because another one had failed. What it saw is
	// that check's id.
	CauseBlocked = "blocked"
	// CauseManagerExited is the cause when the learner's manager ended by itself, or could not be started.
	CauseManagerExited = "manager-exited"
	// CauseManagerSilent is the cause when the manager runs and asks the API server for nothing.
	CauseManagerSilent = "manager-silent"
	// CausePanicked is the cause when the manager's code panicked over the object. controller-runtime
	// turns that into an error, so that the manager goes on running.
	CausePanicked = "panicked"
	// CauseNoManifest is the cause when config/crd/bases holds no definition of Memcached.
	CauseNoManifest = "no-manifest"
	// CauseRefused is the cause when the API server does not take the definition.
	CauseRefused = "refused"
)
