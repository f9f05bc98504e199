module github.com/example/operator-lab/clusters/components

go 1.26.0

tool github.com/example/operator-lab/clusters/components/pause
