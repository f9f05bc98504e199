package doctor

import (
	"context"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pullTimeout bounds the question to an image registry. A network without one
// often swallows packets instead of refusing them.
const pullTimeout = 5 * time.Second

// canPull asks the image's registry whether it has it.
func canPull(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	ref, err := name.ParseReference(image)
	if err != nil {
		return err
	}
	_, err = remote.Head(ref, remote.WithContext(ctx))
	return err
}
