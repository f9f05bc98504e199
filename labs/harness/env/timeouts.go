package env

import "time"

// How long a check waits for the world before it says no: the waits that checks share.
const (
	// CheckLimit bounds one check from its first request to its last, whatever it waits for.
	CheckLimit = 115 * time.Second
	// EventuallyTimeout is how long Eventually polls without a timeout of its own. A right operator answers a change within
	// 50 ms; one that was just started may have to build its caches, and the rest is for a busy machine. One that does
	// nothing is not waited for: see [idleLimit].
	EventuallyTimeout = 15 * time.Second
	// silenceTimeout is how long a manager may run before its first request. One that starts a controller sends it
	// within a second. It is less than EventuallyTimeout: what is silent is not called late.
	silenceTimeout = 10 * time.Second
	// cacheTimeout is how long the first checks wait for a manager's caches to be filled once it has asked for
	// Memcacheds, where its log does not tell.
	cacheTimeout = time.Second
	// PodsTimeout is how long real Pods may take to be available: scheduling, sandbox, start. Two seconds on a
	// quiet machine, and 28 s were seen on one with twenty runnable programs for each core; Pods that cannot
	// become available for a reason that shows are not waited for.
	PodsTimeout = 60 * time.Second
	// PodsTimeoutAfterFailure is how long Pods are still waited for once another check has failed. Two seconds is what a
	// quiet machine needs, and a readiness probe is given five to succeed; an operator that fights the Deployment controller
	// would use up [PodsTimeout].
	PodsTimeoutAfterFailure = 8 * time.Second
	// CollectTimeout is how long garbage collection may take. The collector looks for new kinds every
	// 30 s only, so a Memcached that is deleted soon after its CRD was installed is noticed late.
	CollectTimeout = 45 * time.Second
	// idleLimit is how long a wait for the manager goes on while neither the manager nor anybody else
	// does anything in its namespace. A right operator acts within milliseconds of a change, and tries again sooner than this.
	idleLimit = 4 * time.Second
	// shortIdleLimit is [idleLimit] once another check has failed, so that the verdict is clear.
	shortIdleLimit = 2 * time.Second
	// QuietPeriod is how long a manager at rest is listened to.
	QuietPeriod = 3 * time.Second
	// FirstTry is how long a manager has for a write that is refused. A right one needs milliseconds.
	FirstTry = 2 * time.Second
	// RetryTimeout is the contract's limit for a write that failed to be tried again.
	RetryTimeout = 10 * time.Second
	// StopTimeout is how long a manager may take to end after SIGTERM before it is killed.
	StopTimeout = 5 * time.Second
	// diagnosticsTimeout is how long a failed check may look for what explains it. The objects of one namespace
	// and the manager's log are read in a tenth of it; nobody waits longer for an answer that is known.
	diagnosticsTimeout = 2 * time.Second
	// discoveryTimeout is how long an Established CRD may take to be found by discovery.
	discoveryTimeout = 10 * time.Second
)
