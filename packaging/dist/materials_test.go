package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// V7: the list of materials is CycloneDX, by the schema of its authors and as their library reads it.
func TestMaterialsAreCycloneDX(t *testing.T) {
	r, schema := theRelease(t), materialsSchema(t)
	for _, p := range r.platforms {
		text, err := os.ReadFile(filepath.Join(r.out, r.name(p, ".cdx.json")))
		must(t, err)
		if err := schema.Validate(jsonOf(t, text)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		var bom cyclonedx.BOM
		must(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
		self := bom.Metadata.Component
		if bom.SpecVersion != cyclonedx.SpecVersion1_6 || self.Type != cyclonedx.ComponentTypeApplication || self.Version != "v"+r.version {
			t.Errorf("%s: version %s of the format, of %+v", p, bom.SpecVersion, self)
		}
		for _, c := range *bom.Components {
			if c.Type != cyclonedx.ComponentTypeLibrary || !strings.HasPrefix(c.PackageURL, "pkg:golang/"+c.Name+"@") {
				t.Errorf("%s: there is %+v", p, c)
			}
		}
		broken := bytes.Replace(text, []byte(`"type": "library"`), []byte(`"type": "module"`), 1)
		if schema.Validate(jsonOf(t, broken)) == nil {
			t.Errorf("%s: what is no CycloneDX is taken for some", p)
		}
	}
}

// materialsSchema is CycloneDX's own of the version that lists are written in, as its library has it beside it.
func materialsSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	library, err := output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go"))
	must(t, err)
	compiler := jsonschema.NewCompiler()
	for name, file := range map[string]string{"bom-1.6": "bom-1.6.schema.json", "spdx": "spdx.schema.json", "jsf-0.82": "jsf-0.82.schemax.json"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(library)), "schema", file))
		must(t, err)
		must(t, compiler.AddResource("http://cyclonedx.org/schema/"+name+".schema.json", jsonOf(t, text)))
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	must(t, err)
	return schema
}

func jsonOf(t *testing.T, text []byte) (value any) {
	t.Helper()
	must(t, json.Unmarshal(text, &value))
	return value
}
