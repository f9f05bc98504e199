# An overlay leaves the files in config as they are. `namespace` also renames the Namespace itself, and changes the subjects of the
# bindings. `images` finds an image by its name in the manifests, the patch its variable by name.
mkdir -p overlay
cat >overlay/kustomization.yaml <<YAML
resources: [../config/default]
namespace: {{namespace}}
images:
- {name: controller, newName: operator-lab.local/memcached-operator, newTag: {{tag}}}
patches:
- target: {kind: Deployment}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: any}
    spec:
      template:
        spec:
          containers:
          - name: manager
            env: [{name: MEMCACHED_IMAGE, value: "{{image}}"}]
YAML
kubectl kustomize overlay | grep -E 'namespace:|image:|value:'
kubectl apply -k overlay
kubectl rollout status deployment memcached-operator-controller-manager -n {{namespace}} --timeout=60s
kubectl apply -f - <<YAML
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: {{name}}, namespace: {{team}}}
spec: {size: {{size}}}
YAML
kubectl wait memcached {{name}} -n {{team}} --for=condition=Available --timeout=60s
