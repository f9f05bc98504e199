# Step by step: the smallest definition that the API server accepts, and then the rest as a JSON patch. Each step says at once what is
# wrong with it.
cat >crd.yaml <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cachebackups.{{group}}}
spec:
  group: {{group}}
  scope: Namespaced
  names: {kind: CacheBackup, plural: cachebackups, shortNames: [cb]}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
YAML
kubectl create -f crd.yaml
kubectl patch crd cachebackups.{{group}} --type=json -p '[
  {"op": "add", "path": "/spec/versions/0/subresources", "value": {"status": {}}},
  {"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/required", "value": ["spec"]},
  {"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties", "value": {
    "spec": {"type": "object", "required": ["schedule"], "properties": {
      "schedule": {"type": "string"},
      "keep": {"type": "integer", "minimum": 1, "maximum": {{most}}, "default": {{default}}}}},
    "status": {"type": "object", "properties": {"lastBackup": {"type": "string"}}}}}]'
