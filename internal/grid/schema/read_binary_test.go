package schema

import (
	"net/http"
	"testing"
)

// G9: reference §3.
func TestBinaryModeIsStored(t *testing.T) {
	const base = `"specversion":"1.0","id":"1","source":"/s","type":"t"`
	for _, c := range []struct {
		name         string
		header       http.Header
		body, stored string
	}{
		{
			"JSON becomes data", binaryHeader("Content-Type", "application/json; charset=utf-8"), ` {"a": 1} `,
			`{` + base + `,"datacontenttype":"application/json; charset=utf-8","data":{"a": 1}}`,
		},
		{
			"so does what is JSON by its suffix", binaryHeader("Content-Type", "application/vnd.order+json"), `1`,
			`{` + base + `,"datacontenttype":"application/vnd.order+json","data":1}`,
		},
		{
			"text becomes base64", binaryHeader("Content-Type", "text/plain"), `hello`,
			`{` + base + `,"datacontenttype":"text/plain","data_base64":"aGVsbG8="}`,
		},
		{
			"other attributes, and extensions as text in the order of their names",
			binaryHeader("Content-Type", "application/json", "ce-subject", "s", "ce-time", "2017-08-10T21:03:07Z", "ce-dataschema", "#1", "ce-zone", "5", "ce-Tenant", "a"), `0`,
			`{` + base + `,"subject":"s","time":"2017-08-10T21:03:07Z","dataschema":"#1","datacontenttype":"application/json","tenant":"a","zone":"5","data":0}`,
		},
		{
			"percent-encoded attributes", binaryHeader("Content-Type", "application/json", "ce-subject", "Euro%20%E2%82%AC%20%F0%9F%98%80 100% %zz", "ce-x", `"a \"b\" %22"`), `0`,
			`{` + base + `,"subject":"Euro € 😀 100% %zz","datacontenttype":"application/json","x":"a \"b\" \"","data":0}`,
		},
		{
			"headers that are not canonical", http.Header{"CE-ID": {"1"}, "ce-source": {"/s"}, "ce-Type": {"t"}, "Ce-Specversion": {"1.0"}, "Content-Type": {"application/json"}}, `0`,
			`{` + base + `,"datacontenttype":"application/json","data":0}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := clouds(c.body)
			p.Header = c.header
			wantStored(t, p, c.stored)
		})
	}
}

// G9
func TestBinaryModeIsChecked(t *testing.T) {
	without := func(name string) http.Header {
		h := binaryHeader("Content-Type", "application/json")
		h.Del(name)
		return h
	}
	twice := binaryHeader("Content-Type", "application/json")
	twice.Add("ce-id", "2")
	with := func(name, value string) http.Header {
		return binaryHeader("Content-Type", "application/json", name, value)
	}
	for _, c := range []struct {
		name   string
		header http.Header
		body   string
		code   string
		want   string
	}{
		{"no id", without("ce-id"), `0`, codeHeader, "'id' is missing"},
		{"no source", without("ce-source"), `0`, codeHeader, "'source' is missing"},
		{"no type", without("ce-type"), `0`, codeHeader, "'type' is missing"},
		{"no version", without("ce-specversion"), `0`, codeHeader, "'specversion' is missing"},
		{"another version", with("ce-specversion", "0.3"), `0`, codeHeader, "has to be '1.0'"},
		{"a content type in two places", with("ce-datacontenttype", "text/plain"), `0`, codeHeader, "ce-datacontenttype must not be sent"},
		{"data in two places", with("ce-data", "x"), `0`, codeHeader, "ce-data must not be sent"},
		{"a time that is none", with("ce-time", "now"), `0`, codeHeader, "not a date-time"},
		{"an attribute twice", twice, `0`, codeHeader, "ce-id has to be there once"},
		{"an extension twice", http.Header{"Ce-Id": {"1"}, "ce-x": {"1"}, "Ce-X": {"2"}, "Content-Type": {"application/json"}}, `0`, codeHeader, "'x' is there twice"},
		{"an extension with a long name", with("ce-abcdefghijklmnopqrstu", "x"), `0`, codeHeader, "at most 20 letters"},
		{"an extension with a dash", with("ce-a-b", "x"), `0`, codeHeader, "cannot be an attribute"},
		{"an attribute that is no UTF-8", with("ce-subject", "%ff"), `0`, codeHeader, "not percent-encoded UTF-8"},
		{"JSON that is none", with("ce-x", "x"), `{a}`, codeJSON, "not valid JSON at byte 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := clouds(c.body)
			p.Header = c.header
			wantRefused(t, p, c.code, "", c.want)
		})
	}
}
