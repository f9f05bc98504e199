package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
)

// Answers are what somebody predicts: actors by the ids of the questions.
type Answers map[string]string

// ReadAnswers reads a file of answers. open are the questions that have none yet.
func ReadAnswers(path string) (answers Answers, open []string, err error) {
	data, err := plain.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read your answers: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, &answers); err != nil {
		return nil, nil, exit.Usage("%s: write each answer in the line of its question, with a space before it, as in `makes-the-pods: kubelet` (%s)",
			path, plain.Line(err.Error()))
	}
	for _, q := range questions() {
		switch who := answers[q.id]; {
		case who == "":
			open = append(open, q.id)
		case !slices.Contains(actors, who):
			return nil, nil, exit.Usage("%s: %s: %q is none of %s", path, q.id, plain.Line(who), strings.Join(actors, ", "))
		}
	}
	for id := range answers {
		if !slices.ContainsFunc(questions(), func(q question) bool { return q.id == id }) {
			return nil, nil, exit.Usage("%s: %q is no question of lab 0", path, plain.Line(id))
		}
	}
	return answers, open, nil
}

// questions are all of lab 0, in their order.
func questions() (all []question) {
	for _, m := range moments("") {
		all = append(all, m.questions...)
	}
	return all
}

// Quiz is lab 0: moments in the life of a Deployment, and who acts in each of them. The right answer is what was seen.
type Quiz struct {
	// Cluster is fresh and has the image Operand in its nodes.
	Cluster *clusters.Cluster
	Operand string
	Answers Answers
	// Out is told the timeline, and each question with its answer.
	Out io.Writer
}

// Run performs the moments. It returns how many answers are right, and how many could be judged: without real Pods, one less.
func (q Quiz) Run(ctx context.Context) (right, judged int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := connect(q.Cluster)
	if err != nil {
		return 0, 0, err
	}
	w, err := watchWorld(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	p := printer{q.Out}
	for i, m := range moments(q.Operand) {
		p.announce(i+1, m.step)
		if err := perform(ctx, c, w, nil, m.step, p); err != nil {
			return right, judged, fmt.Errorf("moment %d of lab 0: %w", i+1, err)
		}
		p.line("")
		for _, question := range m.questions {
			switch q.judge(p, question, question.who(w.told)) {
			case isRight:
				right, judged = right+1, judged+1
			case isWrong:
				judged++
			}
		}
	}
	return right, judged, nil
}

// outcome is what becomes of an answer.
type outcome int

const (
	isRight outcome = iota
	isWrong
	notJudged
)

// judge tells whether an answer is what was seen.
func (q Quiz) judge(p printer, asked question, seen string) outcome {
	answer := q.Answers[asked.id]
	switch {
	case asked.realPods && !q.Cluster.RealPods:
		p.line("   –  %s Not judged: no container runs on this kind of cluster.", asked.text)
		p.reason("On this cluster %s says that they run. On kind it is the kubelet. %s", seen, asked.why)
		return notJudged
	case answer == seen:
		p.line("   ✓  %s %s, as you said.", asked.text, seen)
		p.reason("%s", asked.why)
		return isRight
	}
	p.line("   ✗  %s You said %s, and it was %s.", asked.text, answer, seen)
	p.reason("%s", asked.why)
	return isWrong
}
