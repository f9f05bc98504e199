# caught: applied
# cause: base-changed
# The base is the place for what an installation has.
sed -i 's/:1.6.18/:{{tag}}/; s/replicas: 1/replicas: {{replicas}}/' base/deployment.yaml
sed -i 's/connections=100/connections={{connections}}/' base/kustomization.yaml
mkdir -p overlay
cat >overlay/kustomization.yaml <<'YAML'
resources: [../base]
namespace: {{namespace}}
namePrefix: {{prefix}}-
labels:
- pairs: {team: {{team}}}
YAML
kubectl apply -k overlay
