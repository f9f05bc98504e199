# One manifest, written from the example of the documentation. required stands twice: a spec has to be there, and in it a schedule.
kubectl apply -f - <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: cachebackups.{{group}}
spec:
  group: {{group}}
  scope: Namespaced
  names:
    kind: CacheBackup
    plural: cachebackups
    singular: cachebackup
    shortNames: [cb]
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [schedule]
            properties:
              schedule:
                type: string
              keep:
                type: integer
                minimum: 1
                maximum: {{most}}
                default: {{default}}
          status:
            type: object
            properties:
              lastBackup:
                type: string
YAML
kubectl wait --for=condition=Established crd/cachebackups.{{group}} --timeout=30s
