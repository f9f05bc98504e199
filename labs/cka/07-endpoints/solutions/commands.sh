# Commands alone: the selector with `set selector`, the port with a merge patch, which replaces the list of ports.
kubectl set selector service {{service}} -n {{namespace}} app={{name}},track=stable
kubectl patch service {{service}} -n {{namespace}} --type=merge -p '{"spec": {"ports": [{"port": 11211, "targetPort": 11311}]}}'
kubectl describe service {{service}} -n {{namespace}}
