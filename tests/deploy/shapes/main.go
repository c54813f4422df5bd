// Checks files against the types of the programs that read them.
//
//	shapes FILE...
//
// A file named compose.yaml is read as Compose reads it; each document of any other one must be a custom resource that is known here. A
// field that its type does not have is told, and ends the program with status 1.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	strict "sigs.k8s.io/yaml"
)

// A fresh value of the type that reads such a resource.
var types = map[string]func() any{
	"gateway.networking.k8s.io/v1 HTTPRoute":  func() any { return &gateway.HTTPRoute{} },
	"monitoring.coreos.com/v1 PrometheusRule": func() any { return &monitoring.PrometheusRule{} },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return &monitoring.ServiceMonitor{} },
}

func main() {
	status := 0
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Printf("%s: %v\n", file, err)
			status = 1
		}
	}
	os.Exit(status)
}

func check(file string) error {
	if filepath.Base(file) == "compose.yaml" {
		return compose(file)
	}
	return resources(file)
}

func compose(file string) error {
	options, err := cli.NewProjectOptions([]string{file})
	if err != nil {
		return err
	}
	_, err = options.LoadProject(context.Background())
	return err
}

func resources(file string) error {
	opened, err := os.Open(file)
	if err != nil {
		return err
	}
	defer opened.Close()
	documents := yaml.NewYAMLReader(bufio.NewReader(opened))
	var found []error
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return errors.Join(found...)
		}
		if err != nil {
			return err
		}
		found = append(found, resource(document))
	}
}

func resource(document []byte) error {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := strict.Unmarshal(document, &head); err != nil {
		return err
	}
	name := head.APIVersion + " " + head.Kind
	fresh, known := types[name]
	if !known {
		return fmt.Errorf("no type is known for %q", name)
	}
	if err := strict.UnmarshalStrict(document, fresh()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
