// SPDX-License-Identifier: Apache-2.0

// Package registry speaks to the registry of caches, which is no part of any
// cluster.
package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// lab:10 begin registry-client

// timeout is how long the registry may take for an answer. Without one, a slow
// registry holds a worker for ever.
const timeout = 2 * time.Second

// ErrRefused is the cause when the registry will never take an entry as it is.
var ErrRefused = errors.New("the registry refuses it")

// Entry is what the registry knows about a cache.
type Entry struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Size      int32  `json:"size"`
}

// Client speaks to the registry at a URL.
type Client struct{ url string }

// New returns a client of the registry at url, or nil if that is empty.
func New(url string) *Client {
	if url == "" {
		return nil
	}
	return &Client{url: url}
}

// Put makes the entry of uid what it should be, whatever was there before.
func (c *Client) Put(ctx context.Context, uid string, entry Entry) error {
	body, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPut, uid, body)
}

// Delete sees to it that uid has no entry.
func (c *Client) Delete(ctx context.Context, uid string) error {
	return c.do(ctx, http.MethodDelete, uid, nil)
}

func (c *Client) do(ctx context.Context, method, uid string, body []byte) error {
	address, err := url.JoinPath(c.url, "caches", uid)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("the registry does not answer: %w", reason(err))
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode < http.StatusMultipleChoices:
		return nil
	case response.StatusCode == http.StatusNotFound && method == http.MethodDelete:
		return nil // somebody was here before
	case response.StatusCode == http.StatusUnprocessableEntity && method == http.MethodPut:
		return ErrRefused
	}
	return fmt.Errorf("the registry answers %s", response.Status)
}

// lab:10 end

// lab:10 begin reason

// reason is what is the same in each error of a kind. The rest names a port that is
// another one each time, and a status that is another one each time makes a pass each time.
func reason(err error) error {
	if network := (*net.OpError)(nil); errors.As(err, &network) {
		return network.Err
	}
	return err
}

// lab:10 end
