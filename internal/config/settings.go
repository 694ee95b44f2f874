package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/api/spec"
)

// EnvPrefix begins the name of every variable that is a setting.
const EnvPrefix = "EVENTYARD_"

// Setting is one scalar field of Config, with the names it goes by.
type Setting struct {
	Key     string // in the file, with a dot before the name inside a section
	Flag    string // without the dashes
	Env     string
	Value   string // the word that stands for the value in help
	Bool    bool   // true or false; the bare flag is true
	Default string
	Help    string

	value reflect.Value // of the Config it was taken from
}

// Settings lists every setting that a flag or a variable can give, in the order of the struct.
func Settings() []Setting { return settingsOf(new(Config)) }

func settingsOf(c *Config) []Setting {
	return collect(nil, "", reflect.ValueOf(c).Elem())
}

func collect(settings []Setting, prefix string, v reflect.Value) []Setting {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		key := prefix + tag.Get("key")
		switch {
		case isScalar(v.Field(i)):
			r := rowOf(rows, key)
			settings = append(settings, Setting{
				Key: key, Flag: spec.Separated(key, "-"), Env: EnvPrefix + strings.ToUpper(spec.Separated(key, "_")),
				Value: r.value, Bool: v.Field(i).Kind() == reflect.Bool, Default: r.usual, Help: r.help, value: v.Field(i),
			})
		case v.Field(i).Kind() == reflect.Struct:
			settings = collect(settings, key+".", v.Field(i))
		}
	}
	return settings
}

func rowOf(among []row, key string) row {
	i := slices.IndexFunc(among, func(r row) bool { return r.key == key })
	if i < 0 {
		panic("config: no row describes " + key) // Default asks for all
	}
	return among[i]
}

func isScalar(v reflect.Value) bool {
	if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return true
	}
	switch v.Kind() {
	case reflect.String, reflect.Int, reflect.Bool:
		return true
	}
	return false
}

func (s Setting) set(text string) error { return setScalar(s.value, text) }

// setScalar gives a scalar field its value from text.
func setScalar(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return nil
	case reflect.Bool:
		b, err := spec.ParseBool(text)
		v.SetBool(b)
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return fmt.Errorf("%q is no whole number", text)
	}
	v.SetInt(int64(n))
	return nil
}
