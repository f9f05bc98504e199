package image_test

import (
	"archive/tar"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/example/operator-lab/clusters/image"
)

func ExampleWriteProgram() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	manager, archive := filepath.Join(dir, "manager"), filepath.Join(dir, "image.tar")
	// In place of: CGO_ENABLED=0 go build -o manager ./cmd
	if err := os.WriteFile(manager, []byte("a program"), 0o600); err != nil {
		log.Fatal(err)
	}

	if err := image.WriteProgram(archive, "example.com/manager:test", manager); err != nil {
		log.Fatal(err)
	}

	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		log.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(config.OS, config.Config.Entrypoint, config.Config.User)
	files := tar.NewReader(mutate.Extract(img))
	for header, err := files.Next(); err == nil; header, err = files.Next() {
		fmt.Printf("%s %o, %d bytes\n", header.Name, header.Mode, header.Size)
	}
	// Output:
	// linux [/manager] 65532:65532
	// manager 755, 9 bytes
}
