package lake

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"
)

// A row of the table in docs/engines/README.md.
type row struct {
	Engine     string `json:"engine"`
	Version    string `json:"version"`
	Catalog    string `json:"catalog"`
	Files      string `json:"files"`
	Statements int    `json:"statements"`
	Seconds    int    `json:"seconds"`
}

// A counter of the calls that came out as they must, by where the files lie.
type counter struct {
	sync.Mutex
	began time.Time
	calls map[string]int
}

var report = counter{began: time.Now(), calls: map[string]int{}}

func (c *counter) ran(scheme string) {
	c.Lock()
	defer c.Unlock()
	c.calls[scheme]++
}

func (c *counter) write(file string) error {
	rows := []row{}
	for scheme, calls := range c.calls {
		seconds := int(time.Since(c.began).Round(time.Second).Seconds())
		rows = append(rows, row{"iceberg-go", version(), os.Getenv("FRAZIL_STORE"), scheme, calls, seconds})
	}
	text, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

//go:embed go.mod
var module string

// version is the client's, as go.mod pins it: a test binary does not know what it was linked from.
func version() string {
	return regexp.MustCompile(`github.com/apache/iceberg-go v(\S+)`).FindStringSubmatch(module)[1]
}

func TestMain(m *testing.M) {
	for _, name := range []string{"FRAZIL_URI", "FRAZIL_WAREHOUSES"} {
		if os.Getenv(name) == "" {
			fmt.Fprintf(os.Stderr, "set %s: see docs/engines/go.md\n", name)
			os.Exit(2)
		}
	}
	status := m.Run()
	if file := os.Getenv("FRAZIL_REPORT"); file != "" {
		if err := report.write(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}
