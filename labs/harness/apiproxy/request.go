package apiproxy

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/json"
)

// Request is one request of the client, with its answer.
type Request struct {
	// Time is when the request arrived.
	Time time.Time
	// Verb is the Kubernetes verb: get, list, watch, create, update, patch, delete, deletecollection. If the path names no
	// resource, Verb is the HTTP method in lower case, and Resource is the path.
	Verb        string
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// DryRun says that the client asked for no change.
	DryRun bool
	// Status is the HTTP status of the answer.
	Status int
	// Message is the reason for a refusal, "" if the request was not refused.
	Message string
	// Disturbed says that the proxy or its [Disturbance] caused the refusal, and not the client.
	Disturbed bool
	// Object is the name of the object in the answer to a create, update or patch, and ResourceVersion its version. Both are ""
	// if the answer has none. A write that changed nothing is answered with the version from before.
	Object          string
	ResourceVersion string
}

// describe turns an HTTP request into a record without an answer.
func describe(req *http.Request, info *request.RequestInfo) Request {
	r := Request{Time: time.Now(), Verb: strings.ToLower(req.Method), Resource: req.URL.Path}
	if info.IsResourceRequest {
		r.Verb, r.Group, r.Resource, r.Subresource = info.Verb, info.APIGroup, info.Resource, info.Subresource
		r.Namespace, r.Name, r.DryRun = info.Namespace, info.Name, req.URL.Query().Has("dryRun")
	}
	return r
}

// Mutating says whether the request asked for a change.
func (r Request) Mutating() bool {
	return !r.DryRun && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// Refused says whether the API server refused the request, and the client is the reason.
func (r Request) Refused() bool { return r.Status >= http.StatusBadRequest && !r.Disturbed }

// Written says whether the request changed something. After an error of the server nobody knows: that counts as changed.
func (r Request) Written() bool {
	return r.Mutating() && !r.Disturbed && (r.Status < http.StatusBadRequest || r.Status >= http.StatusInternalServerError)
}

// Created says whether the request has made an object. A server-side apply does so by a patch.
func (r Request) Created() bool {
	return r.Written() && (r.Verb == "create" || r.Status == http.StatusCreated)
}

// String is the request in the words of `kubectl auth can-i`, with its answer.
func (r Request) String() string {
	text := strings.TrimRight(r.verbAndResource()+" "+strings.Trim(r.Namespace+"/"+r.Name, "/"), " ")
	switch {
	case r.Disturbed:
		return text + " (disturbed by the check)"
	case r.Message != "":
		return fmt.Sprintf("%s: %s", text, r.Message)
	}
	return fmt.Sprintf("%s -> %d", text, r.Status)
}

func (r Request) verbAndResource() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	return text
}

// Kind is the request without its object: "update memcacheds.cache.example.com/status" or "list deployments.apps in all
// namespaces".
func (r Request) Kind() string {
	if r.Namespace == "" && !strings.HasPrefix(r.Resource, "/") {
		return r.verbAndResource() + " in all namespaces"
	}
	return r.verbAndResource()
}

// asUser finds the user in the API server's message about a missing right.
var asUser = regexp.MustCompile(`User "([^"]+)" cannot `)

// Reason is why the request was refused, in few words. manager is the user name of the manager at the API server.
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

// readObject sets Object and ResourceVersion from the answer to a write.
func (r *Request) readObject(body []byte) {
	meta := metadata(body)
	r.Object = meta.Name
	if meta.DeletionTimestamp == nil || len(meta.Finalizers) > 0 { // else the object is gone, and the answer has the version from before
		r.ResourceVersion = meta.ResourceVersion
	}
}

// metadata reads an object's metadata from JSON or protobuf. Every kind has them in the first field.
func metadata(body []byte) metav1.ObjectMeta {
	var object metav1.PartialObjectMetadata
	if raw, ok := strings.CutPrefix(string(body), "k8s\x00"); ok { // the prefix of protobuf
		var envelope runtime.Unknown
		if envelope.Unmarshal([]byte(raw)) == nil {
			_ = object.Unmarshal(envelope.Raw)
		}
	} else {
		_ = json.UnmarshalCaseSensitivePreserveInts(body, &object)
	}
	return object.ObjectMeta
}
