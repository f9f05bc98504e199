package apiproxy

import (
	"net/url"
	"slices"
	"strings"
)

// NamespaceFilter hides namespaces from a client. Lists and watches of namespaced objects, and of namespaces, leave out
// what is hidden, and what a client asks for in a hidden namespace is forbidden. The zero value hides nothing.
type NamespaceFilter struct {
	// Hidden are namespaces that are not seen.
	Hidden []string
	// Namespaced reports whether a resource is namespaced; others cannot be selected by namespace. After an error the proxy
	// answers 503.
	Namespaced func(group, resource string) (bool, error)
}

// hides says whether a namespace is hidden. Programs of several checks are one learner's: one could do for another what a check counts
// there.
func (f NamespaceFilter) hides(namespace string) bool { return slices.Contains(f.Hidden, namespace) }

const fieldSelector = "fieldSelector"

// narrow has the API server itself leave out what is not seen, by the fields that all namespaced resources can be
// selected by (https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/).
func (f NamespaceFilter) narrow(u *url.URL, r Request) error {
	if len(f.Hidden) == 0 || !selects(r.Verb) || r.Subresource != "" {
		return nil
	}
	query := u.Query()
	own := query.Get(fieldSelector)
	if r.Name != "" && own == "" {
		return nil // an old way to watch one object, by its path, takes no selector
	}
	field, err := f.field(r)
	if field == "" || err != nil {
		return err
	}
	selector := f.selector(field)
	if own != "" {
		selector = own + "," + selector
	}
	query.Set(fieldSelector, selector)
	u.RawQuery = query.Encode()
	return nil
}

func selects(verb string) bool {
	return verb == "list" || verb == "watch" || verb == "deletecollection"
}

// field is where an object has the name of its namespace, "" if it is in none.
func (f NamespaceFilter) field(r Request) (string, error) {
	const namespace = "metadata.namespace"
	switch {
	case r.Group == "" && r.Resource == "namespaces":
		return "metadata.name", nil
	case r.Namespace != "":
		return namespace, nil
	}
	namespaced, err := f.Namespaced(r.Group, r.Resource)
	if !namespaced || err != nil {
		return "", err
	}
	return namespace, nil
}

func (f NamespaceFilter) selector(field string) string {
	var terms []string
	for _, ns := range f.Hidden {
		terms = append(terms, field+"!="+ns)
	}
	return strings.Join(terms, ",")
}
