package env

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/harness/probe"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// causeDefinitionRejected is the cause if the API server refuses the definition that our controller-gen makes of the learner's
// types.
const causeDefinitionRejected = "crd-rejected"

// Generated is what this course's controller-gen makes of the workspace. The lab has run it before the suite.
func Generated() (made generate.Results, err error) {
	return made, readJSON(current.config.Generated, &made)
}

func readJSON(file string, into any) error {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("read what the lab has prepared: %w", err)
	}
	return nil
}

// InstallDerivedCRD installs the definition that our controller-gen makes of the learner's types. Its group is the run's own, so that
// the workspace's manifest can be installed as well, and no manager watches it. A finding about the types has the cause
// [generate.CauseFailed] or "crd-rejected".
func InstallDerivedCRD(ctx context.Context) (*crd.Resource, error) {
	made, err := Generated()
	if err != nil {
		return nil, err
	}
	manifests, err := made.CRD.Manifests()
	if err != nil {
		return nil, err
	}
	definitions := generate.Definitions(manifests, suite.Kind)
	switch {
	case len(definitions) == 0:
		return nil, finding.New(generate.CauseFailed, "a definition of the kind "+suite.Kind,
			"controller-gen finds no such kind in your types; is the root marker still above the struct?")
	case len(definitions) > 1:
		return nil, finding.New(finding.CauseOther, "one kind "+suite.Kind+", of one group",
			"%s and %s", definitions[0].Name(), definitions[1].Name())
	}
	definition, err := definitions[0].Definition()
	if err != nil {
		return nil, err
	}
	group := fnv.New32a()
	fmt.Fprint(group, current.config.Seed, current.config.Scratch)
	definition.Spec.Group = fmt.Sprintf("types-%08x.example.com", group.Sum32())
	definition.Name = definition.Spec.Names.Plural + "." + definition.Spec.Group
	definition.Spec.Scope = apiextensionsv1.NamespaceScoped // another check judges the scope; each check has a namespace
	err = crd.Install(ctx, current.admin, definition)
	if refusal, ok := crd.Refused(err); ok {
		return nil, finding.New(causeDefinitionRejected, "a definition that the API server takes", "%s", refusal.Text)
	}
	if err != nil {
		return nil, err
	}
	resource, err := crd.New(current.adminConfig, definition)
	if err != nil {
		return nil, err
	}
	return resource, resource.AwaitServed(ctx)
}

// LearnersResource installs the workspace's manifest, and returns it as the API server stores it, with its resource.
// The group is the learner's choice. If there is no manifest, or the API server refuses it, the error is
// a finding with the cause [suite.CauseNoManifest] or [suite.CauseRefused].
func LearnersResource(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, *crd.Resource, error) {
	definition, err := installDefinition(ctx)
	if err == nil {
		err = current.admin.Get(ctx, client.ObjectKeyFromObject(definition), definition)
	}
	if err != nil {
		return nil, nil, err
	}
	resource, err := crd.New(current.adminConfig, definition)
	return definition, resource, err
}

// installDefinition installs the workspace's own manifest, whatever its file is called, and waits until it is Established. The error
// is a finding about the manifest.
func installDefinition(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	definition, err := definition()
	if err != nil {
		return nil, err
	}
	if err := crd.Install(ctx, current.admin, definition); err != nil {
		text := err.Error()
		if refusal, ok := crd.Refused(err); ok {
			text = refusal.Text
		}
		return nil, finding.New(suite.CauseRefused, "the API server takes the manifest in "+suite.ManifestDir, "%s", text)
	}
	return definition, nil
}

// Manifests are the definitions that the workspace keeps in [suite.ManifestDir]. Without one of [suite.Kind] the error is a
// finding with the cause [suite.CauseNoManifest].
func Manifests() ([]generate.Manifest, error) {
	all, err := generate.ReadManifests(filepath.Join(current.config.Workspace, filepath.FromSlash(suite.ManifestDir)))
	if err != nil {
		return nil, finding.New(suite.CauseRefused, "YAML in "+suite.ManifestDir, "%v", err)
	}
	definitions := slices.DeleteFunc(all, func(m generate.Manifest) bool { return m.Kind() != "CustomResourceDefinition" })
	if len(generate.Definitions(definitions, suite.Kind)) == 0 {
		return nil, finding.New(suite.CauseNoManifest, "a definition of "+suite.Kind+" in "+suite.ManifestDir,
			"none among %d definitions; `make manifests` in the workspace writes it", len(definitions))
	}
	return definitions, nil
}

// Copies is what the copies of the learner's objects share with their originals. The lab has compiled and run the probe before
// the suite. If that failed, the error is a finding with the cause [probe.CauseBuild] or [probe.CauseNoAnswer].
func Copies() (probe.Copies, error) {
	var result probe.Result
	if err := readJSON(current.config.Copies, &result); err != nil {
		return nil, err
	}
	if result.Finding != nil {
		return nil, result.Finding
	}
	return result.Copies, nil
}

// definition is the workspace's definition of [suite.Kind]. If there are several, it is the one with the name of the contract card.
func definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := Manifests()
	if err != nil {
		return nil, err
	}
	definitions := generate.Definitions(all, suite.Kind)
	chosen := definitions[0]
	for _, m := range definitions {
		if m.Name() == suite.CRDName {
			chosen = m
		}
	}
	definition, err := chosen.Definition()
	if err != nil {
		return nil, finding.New(suite.CauseRefused, "a CustomResourceDefinition in "+suite.ManifestDir+"/"+chosen.File, "%v", err)
	}
	if n := len(definition.Spec.Versions); n > 1 { // each would have bounds and subresources of its own
		return nil, finding.New(finding.CauseOther, "a definition with one version, v1alpha1", "%d versions", n)
	}
	return definition, nil
}
