package apiproxy

import (
	"net/url"
	"slices"
	"strings"
)

// NamespaceFilter hides namespaces from a client. Lists and watches of namespaced objects, and of namespaces, leave out
// what is hidden, and what a client asks for in a hidden namespace is forbidden. The zero value hides nothing.
type NamespaceFilter struct {
	// Hidden are the namespaces.
	Hidden []string
	// Namespaced reports whether a resource is namespaced. After an error the proxy answers 503.
	Namespaced func(group, resource string) (bool, error)
}

func (f NamespaceFilter) hides(namespace string) bool { return slices.Contains(f.Hidden, namespace) }

// narrow has the API server itself leave out what is hidden, by the fields that all namespaced resources can be selected by
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/).
func (f NamespaceFilter) narrow(u *url.URL, r Request) error {
	const fieldSelector = "fieldSelector"
	selects := r.Verb == "list" || r.Verb == "watch" || r.Verb == "deletecollection"
	query := u.Query()
	terms := slices.DeleteFunc(query[fieldSelector], func(term string) bool { return term == "" })
	if len(f.Hidden) == 0 || !selects || r.Subresource != "" || r.Name != "" && len(terms) == 0 { // an old way to watch one object
		return nil
	}
	field, err := f.field(r)
	if field == "" || err != nil {
		return err
	}
	for _, namespace := range f.Hidden {
		terms = append(terms, field+"!="+namespace)
	}
	query.Set(fieldSelector, strings.Join(terms, ","))
	u.RawQuery = query.Encode()
	return nil
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
