package apiproxy

import (
	"net/http"
	"regexp"
)

// asUser is how the API server says on whose behalf it was asked for what it does not allow.
var asUser = regexp.MustCompile(`User "([^"]+)" cannot `)

// Kind is what the request asks for, without the object: there may have been many. "update
// memcacheds.cache.example.com/status", "list deployments.apps in all namespaces".
func (r Request) Kind() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Namespace == "" && r.Resource != "" && r.Resource[0] != '/' {
		text += " in all namespaces"
	}
	return text
}

// Reason is why the request was refused, as short as it can be said. manager is the name of the client as
// the API server knows it: who else was refused is worth saying.
func (r Request) Reason(manager string) string {
	user := asUser.FindStringSubmatch(r.Message)
	switch {
	case user != nil && user[1] == manager:
		return "it has no right to do that"
	case user != nil:
		return user[1] + " has no right to do that, and your manager asks in its name"
	case r.Message == "":
		return http.StatusText(r.Status)
	}
	return r.Message
}
