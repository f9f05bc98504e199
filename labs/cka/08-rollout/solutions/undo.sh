# The history shows what the revision before was; undo brings all of it. The strategy is no part of a revision: a patch sets it.
kubectl rollout history deployment {{name}} -n {{namespace}} --revision=1
kubectl rollout undo deployment {{name}} -n {{namespace}}
kubectl patch deployment {{name}} -n {{namespace}} \
  -p '{"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}}'
kubectl rollout status deployment {{name}} -n {{namespace}} --timeout=60s
