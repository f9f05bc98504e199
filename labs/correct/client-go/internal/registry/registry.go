// Package registry is a client of the registry of caches, which is outside the cluster.
package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Entry is what the registry has of one Memcached.
type Entry struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Size      int32  `json:"size"`
}

// Registry is the address of one; "" is none.
type Registry string

// ErrRejected means that the registry will never take the same entry.
var ErrRejected = errors.New("the registry will never take this entry")

// httpClient follows no redirect: it may turn a PUT into a GET.
var httpClient = &http.Client{
	Timeout:       8 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Put makes entry the one under uid, whatever is there.
func (r Registry) Put(ctx context.Context, uid types.UID, entry Entry) error {
	text, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	return r.send(ctx, http.MethodPut, uid, text)
}

// Delete makes sure that there is no entry under uid.
func (r Registry) Delete(ctx context.Context, uid types.UID) error {
	return r.send(ctx, http.MethodDelete, uid, nil)
}

func (r Registry) send(ctx context.Context, method string, uid types.UID, text []byte) error {
	address, err := url.JoinPath(string(r), "caches", string(uid))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	answer, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch status := answer.StatusCode; {
	case status/100 == 2, method == http.MethodDelete && status == http.StatusNotFound:
		return nil
	case method == http.MethodPut && status == http.StatusUnprocessableEntity:
		return ErrRejected
	default:
		return fmt.Errorf("the registry answers %d to a %s", status, method)
	}
}
