# The fields of kustomization.yaml do all of it. `behavior: merge` keeps what the base's generator has beside the new value.
mkdir -p overlay
cat >overlay/kustomization.yaml <<'YAML'
resources: [../base]
namespace: {{namespace}}
namePrefix: {{prefix}}-
labels:
- pairs: {team: {{team}}}
replicas:
- name: cache
  count: {{replicas}}
images:
- name: registry.example.com/memcached
  newTag: {{tag}}
configMapGenerator:
- name: options
  behavior: merge
  literals: [connections={{connections}}]
YAML
kubectl kustomize overlay
kubectl apply -k overlay
