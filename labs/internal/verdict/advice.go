package verdict

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/trace"
)

const (
	// advices is how much advice a verdict prints.
	advices = 3
	// toleratedWrites is how many writes that change nothing are not worth a word: caches are a moment
	// behind now and then.
	toleratedWrites = 3
)

// advise looks for what is not wrong, and could be better.
func (r *run) advise(result *Result, recording *trace.Recording) []string {
	var advice []string
	if r.Course.UnderRole(result.Lab) {
		if rules, err := suite.RoleRules(r.Workspace); err == nil {
			advice = append(advice, adviseRights(rules, recording.Tallies)...)
		}
	}
	advice = append(advice, adviseWrites(recording.Unneeded())...)
	var logs []io.Reader
	files, _ := filepath.Glob(filepath.Join(r.artifacts, suite.ManagerLogs))
	for _, file := range files {
		if log, err := os.Open(file); err == nil {
			defer log.Close()
			logs = append(logs, log)
		}
	}
	return append(advice, adviseErrors(io.MultiReader(logs...))...)
}

// unseen are rights that no request of a run shows, and that an operator may need all the same: admission
// asks for some of them elsewhere, and the run keeps the manager from leader election and from guarding
// its metrics.
var unseen = []string{
	"memcacheds/finalizers", "leases", "tokenreviews", "subjectaccessreviews",
}

// adviseRights names the rights that were granted and never used.
func adviseRights(rules []rbacv1.PolicyRule, tallies []apiproxy.Tally) []string {
	used := map[string]bool{}
	for _, t := range tallies {
		resource := t.Resource
		if t.Subresource != "" {
			resource += "/" + t.Subresource
		}
		used[t.Verb+" "+t.Group+"/"+resource] = true
	}
	unused := unusedRights(rules, used)
	if len(unused) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Your role grants what no request of labs 4 to 7 needed: %s. "+
		"What is not granted cannot be misused: try without.", strings.Join(unused, "; "))}
}

// unusedRights are those of a role that no request used.
func unusedRights(rules []rbacv1.PolicyRule, used map[string]bool) (unused []string) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				verbs := unusedVerbs(group, resource, rule.Verbs, used)
				if len(verbs) > 0 && !slices.Contains(unseen, resource) {
					unused = append(unused, strings.Join(verbs, ", ")+" on "+qualified(group, resource))
				}
			}
		}
	}
	return unused
}

// reads go together: a cache lists and watches, and a get beside them gives nothing more away.
var reads = []string{"get", "list", "watch"}

// unusedVerbs are those of verbs that no request used. An event is patched when it is told again, which
// a short run need not come to.
func unusedVerbs(group, resource string, verbs []string, used map[string]bool) []string {
	did := func(verb string) bool { return used[verb+" "+group+"/"+resource] }
	return slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool {
		switch {
		case slices.Contains(reads, verb):
			return slices.ContainsFunc(reads, did)
		case resource == "events":
			return did("create")
		case resource == "deployments" && verb == "delete":
			return true // where admission guards owner references, adopting needs it
		case resource == "deployments" && verb == "create":
			return did("create") || did("patch") // an apply that creates is a patch, and needs both
		default:
			return did(verb)
		}
	})
}

// qualified is a resource with its group: "memcacheds.cache.example.com/status".
func qualified(group, resource string) string {
	base, sub, _ := strings.Cut(resource, "/")
	return strings.Trim(strings.TrimSuffix(base+"."+group, ".")+"/"+sub, "/")
}

// adviseWrites counts the writes that changed nothing.
func adviseWrites(unneeded []apiproxy.Request) []string {
	counts := map[string]int{}
	for _, r := range unneeded {
		of := "of " + r.Resource
		if r.Subresource != "" {
			of = "of the " + r.Subresource + " of " + r.Resource
		}
		counts[of]++
	}
	if len(unneeded) <= toleratedWrites {
		return nil
	}
	var parts []string
	for of, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, of))
	}
	slices.Sort(parts)
	return []string{fmt.Sprintf("%d writes of your operator changed nothing (%s). "+
		"The API server drops them. If you compare before you write, you compare with something that lacks a default: a port without Protocol, for example.", len(unneeded), strings.Join(parts, ", "))}
}

var (
	passID    = regexp.MustCompile(`"?reconcileID"?\s*[:=]\s*"?([0-9a-f-]{36})`)
	errorText = regexp.MustCompile(`"?\b(?:error|err)"?\s*[:=]\s*"((?:[^"\\]|\\.)*)"`)
)

// returned is what controller-runtime logs for each error that Reconcile returns.
const returned = "Reconciler error"

// adviseErrors looks for passes whose error was logged by the operator and, as it was returned too, once
// more by controller-runtime. An operator that logs in another form is not judged.
func adviseErrors(log io.Reader) []string {
	logged, twice := map[string][]string{}, 0
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		id, text := passID.FindStringSubmatch(lines.Text()), errorText.FindStringSubmatch(lines.Text())
		switch {
		case id == nil || text == nil || text[1] == "":
		case !strings.Contains(lines.Text(), returned):
			logged[id[1]] = append(logged[id[1]], text[1])
		case slices.ContainsFunc(logged[id[1]], func(own string) bool { return strings.Contains(text[1], own) }):
			twice++
			fallthrough
		default:
			delete(logged, id[1])
		}
	}
	if twice == 0 {
		return nil
	}
	passes := "one pass"
	if twice > 1 {
		passes = fmt.Sprintf("%d passes", twice)
	}
	return []string{fmt.Sprintf("In %s the same error stands in the log twice: you logged it, and you returned it, "+
		"and controller-runtime logs what is returned. Returning it is enough.", passes)}
}
