# caught: kept
# cause: address
# A Service is quickly made anew.
kubectl delete service {{service}} -n {{namespace}}
kubectl expose deployment {{name}} -n {{namespace}} --name={{service}} --port=11211 --target-port=11311
