package lake

import (
	"os"
	"strings"
	"testing"
)

func TestThePageNamesTheVersionOfThisSuite(t *testing.T) {
	page, err := os.ReadFile("../../../docs/engines/go.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"iceberg-go " + version() + ",", "iceberg-go@v" + version() + "\n"} {
		if !strings.Contains(string(page), words) {
			t.Errorf("the page lacks %q", words)
		}
	}
}
