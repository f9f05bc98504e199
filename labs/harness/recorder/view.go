package recorder

import (
	"net/url"
	"strings"
)

// View is the part of a cluster that a client sees. Lists and watches of namespaced objects, and of namespaces, show only
// what lies in it, wherever they look; what a client asks for by its name is not kept from it. The zero value is the whole
// cluster.
type View struct {
	// Except are namespaces that are not seen.
	Except []string
	// Namespaced says whether a resource lies in namespaces: the API server knows no namespace of others, and refuses
	// whoever asks for it. While that cannot be said, a client is told that the API server is unavailable.
	Namespaced func(group, resource string) (bool, error)
}

const fieldSelector = "fieldSelector"

// narrow has the API server itself leave out what is not seen, by the fields that all namespaced resources can be
// selected by (https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/).
func (v View) narrow(u *url.URL, r Request) error {
	if len(v.Except) == 0 || !selects(r.Verb) || r.Subresource != "" {
		return nil
	}
	query := u.Query()
	own := query.Get(fieldSelector)
	if r.Name != "" && own == "" {
		return nil // an old way to watch one object, by its path, takes no selector
	}
	field, err := v.field(r)
	if field == "" || err != nil {
		return err
	}
	selector := v.selector(field)
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
func (v View) field(r Request) (string, error) {
	const namespace = "metadata.namespace"
	switch {
	case r.Group == "" && r.Resource == "namespaces":
		return "metadata.name", nil
	case r.Namespace != "":
		return namespace, nil
	}
	namespaced, err := v.Namespaced(r.Group, r.Resource)
	if !namespaced || err != nil {
		return "", err
	}
	return namespace, nil
}

func (v View) selector(field string) string {
	var terms []string
	for _, ns := range v.Except {
		terms = append(terms, field+"!="+ns)
	}
	return strings.Join(terms, ",")
}
