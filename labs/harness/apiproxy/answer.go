package apiproxy

import (
	"bytes"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// protobufPrefix begins every object that the API server writes as protobuf.
var protobufPrefix = []byte("k8s\x00")

// note adds to a record when the answer came and, for a change, what it says about the object. It reads
// nothing of answers that may be streams, or that a client has asked to be compressed.
func (r *Request) note(resp *http.Response) {
	r.Answered = time.Now()
	switch {
	case r.Verb != "create" && r.Verb != "update" && r.Verb != "patch", r.Status >= http.StatusBadRequest:
		return
	case resp.Header.Get("Content-Encoding") != "":
		return
	}
	meta := metadata(peek(resp))
	r.Object = meta.Name
	if meta.DeletionTimestamp != nil && len(meta.Finalizers) == 0 {
		return // The last finalizer is gone, and the object with it; the answer shows the version before.
	}
	r.ResourceVersion = meta.ResourceVersion
}

// peek reads an answer and puts it back for the client.
func peek(resp *http.Response) []byte {
	body, err := io.ReadAll(resp.Body)
	rest := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	if err != nil {
		return nil
	}
	return body
}

// metadata reads an object's metadata, whatever its kind. Every kind has them in the first field.
func metadata(body []byte) metav1.ObjectMeta {
	var object metav1.PartialObjectMetadata
	raw, ok := bytes.CutPrefix(body, protobufPrefix)
	if !ok {
		_ = kjson.UnmarshalCaseSensitivePreserveInts(body, &object) // as the API server reads names
		return object.ObjectMeta
	}
	var envelope runtime.Unknown
	if envelope.Unmarshal(raw) == nil {
		_ = object.Unmarshal(envelope.Raw)
	}
	return object.ObjectMeta
}
