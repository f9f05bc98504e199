# Patches do the same: one of the Deployment, in a file of its own, and one of a single field of two objects.
mkdir -p overlay
cat >overlay/deployment.yaml <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: cache}
spec:
  replicas: {{replicas}}
  template:
    spec:
      containers:
      - {name: memcached, image: "registry.example.com/memcached:{{tag}}"}
YAML
echo connections={{connections}} >overlay/options.env
cat >overlay/kustomization.yaml <<'YAML'
resources: [../base]
namespace: {{namespace}}
namePrefix: {{prefix}}-
patches:
- path: deployment.yaml
- target: {kind: Deployment|Service}
  patch: '- {op: add, path: /metadata/labels/team, value: {{team}}}'
configMapGenerator:
- name: options
  behavior: merge
  envs: [options.env]
  options: {labels: {team: {{team}}}}
YAML
kubectl kustomize overlay | kubectl apply -f -
