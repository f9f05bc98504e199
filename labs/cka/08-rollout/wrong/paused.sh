# caught: complete
# cause: incomplete
# A rollout that was paused for several changes goes on by itself.
kubectl rollout pause deployment {{name}} -n {{namespace}}
kubectl set image deployment {{name}} -n {{namespace}} memcached=operator-lab.local/memcached:1.6.18
kubectl patch deployment {{name}} -n {{namespace}} --type=json \
  -p '[{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": ["--memory-limit={{memory}}"]}]'
kubectl patch deployment {{name}} -n {{namespace}} \
  -p '{"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}}'
