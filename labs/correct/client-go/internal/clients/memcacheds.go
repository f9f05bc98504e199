// Package clients is what client-gen, informer-gen and lister-gen would write for Memcacheds, by hand and
// only as much of it as is needed.
package clients

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.org/raw/apis/cache/v1alpha1"
)

const resource = "memcacheds"

// Memcacheds is the API server's side of Memcacheds.
type Memcacheds struct {
	client *rest.RESTClient
	codec  runtime.ParameterCodec
}

// New returns a client for Memcacheds, whose types scheme has to know.
func New(config *rest.Config, scheme *runtime.Scheme) (*Memcacheds, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for Memcacheds: %w", err)
	}
	return &Memcacheds{client: client, codec: runtime.NewParameterCodec(scheme)}, nil
}

// In is the client for one namespace, or for all if it is "".
func (m *Memcacheds) In(namespace string) *gentype.ClientWithList[*v1alpha1.Memcached, *v1alpha1.MemcachedList] {
	return gentype.NewClientWithList(resource, m.client, m.codec, namespace,
		func() *v1alpha1.Memcached { return &v1alpha1.Memcached{} },
		func() *v1alpha1.MemcachedList { return &v1alpha1.MemcachedList{} })
}

// ByOptions is the index of Memcacheds by the ConfigMap that they name, as "namespace/name".
const ByOptions = "options"

func options(obj any) ([]string, error) {
	memcached, ok := obj.(*v1alpha1.Memcached)
	if !ok || memcached.Spec.OptionsFrom == nil {
		return nil, nil
	}
	return []string{cache.NewObjectName(memcached.Namespace, memcached.Spec.OptionsFrom.Name).String()}, nil
}

// Informer keeps a copy of all Memcacheds, once it is run.
func (m *Memcacheds) Informer() cache.SharedIndexInformer {
	all := m.In(metav1.NamespaceAll)
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return all.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, options)
		},
	}, &v1alpha1.Memcached{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, ByOptions: options})
}

// Lister reads from an informer's copy. What it returns is shared: copy before you change it.
type Lister struct{ indexer cache.Indexer }

// NewLister returns the Lister of an informer.
func NewLister(informer cache.SharedIndexInformer) Lister { return Lister{informer.GetIndexer()} }

// Get returns one Memcached, or an error that apierrors.IsNotFound knows.
func (l Lister) Get(key cache.ObjectName) (*v1alpha1.Memcached, error) {
	all := listers.New[*v1alpha1.Memcached](l.indexer, v1alpha1.GroupVersion.WithResource(resource).GroupResource())
	return listers.NewNamespaced(all, key.Namespace).Get(key.Name)
}
