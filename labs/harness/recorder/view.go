package recorder

import (
	"net/url"
	"strings"
)

// View is the part of a cluster that a client sees. Lists and watches of namespaced objects show only what lies in it,
// wherever they look; what a client asks for by its name is not kept from it. The zero value is the whole cluster.
type View struct {
	// Only is the one namespace that is seen, "" for all.
	Only string
	// Except are namespaces that are not seen.
	Except []string
	// Namespaced says whether a resource lies in namespaces: the API server knows no namespace of others, and refuses
	// whoever asks for it.
	Namespaced func(group, resource string) bool
}

// narrow has the API server itself leave out what is not seen, by the field that all namespaced resources can be
// selected by (https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/).
func (v View) narrow(u *url.URL, r Request) {
	selector := v.selector()
	if selector == "" || !selects(r.Verb) || r.Subresource != "" || !v.Namespaced(r.Group, r.Resource) {
		return
	}
	query := u.Query()
	if own := query.Get(fieldSelector); own != "" {
		selector = own + "," + selector
	}
	query.Set(fieldSelector, selector)
	u.RawQuery = query.Encode()
}

const fieldSelector = "fieldSelector"

func selects(verb string) bool {
	return verb == "list" || verb == "watch" || verb == "deletecollection"
}

func (v View) selector() string {
	if v.Only != "" {
		return "metadata.namespace=" + v.Only
	}
	var terms []string
	for _, ns := range v.Except {
		terms = append(terms, "metadata.namespace!="+ns)
	}
	return strings.Join(terms, ",")
}
