package azureblob

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// admitSharedKey checks a request that was signed with a key of the account. forms gives
// what may have been signed.
func (d *Handler) admitSharedKey(c *call, shown string, forms func(r *http.Request, query url.Values, account string) []string) (grant, error) {
	account, signature, ok := strings.Cut(strings.TrimSpace(shown), ":")
	if !ok {
		return grant{}, refusal(http.StatusBadRequest, "InvalidAuthenticationInfo", "write SharedKey ACCOUNT:SIGNATURE")
	}
	if account != c.at.Account {
		return grant{}, failed("it is signed for account " + strconv.Quote(account))
	}
	if err := checkDate(c.R); err != nil {
		return grant{}, err
	}
	if !signedBy(d.keysOf(account), signature, forms(c.R, c.query, account)...) {
		return grant{}, failed("the signature fits no key of the account, or what was signed is not what arrived")
	}
	return grant{everything: true}, nil
}

// signedBy tells whether a signature is that of any of the texts by any of the keys. The
// comparisons take the same time wherever they differ.
func signedBy(keys [][]byte, signature string, texts ...string) bool {
	shown, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	fits := false
	for _, key := range keys {
		for _, text := range texts {
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(text))
			fits = hmac.Equal(mac.Sum(nil), shown) || fits
		}
	}
	return fits
}

// checkDate keeps a request that was overheard from being good for ever.
func checkDate(r *http.Request) error {
	text := cmp.Or(r.Header.Get("x-ms-date"), r.Header.Get("Date"))
	if text == "" {
		return failed("it has neither x-ms-date nor Date")
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return failed("its date is none: use the form of RFC 1123")
	}
	if off := time.Since(date); off > maxSkew || off < -maxSkew {
		return failed("its date is " + off.Abs().Round(time.Second).String() + " off the yard's clock: set the clock, or send it sooner")
	}
	return nil
}

// stringsToSign are what a client may have signed: one text, but for the order of headers,
// which libraries sort by two different rules.
func stringsToSign(r *http.Request, query url.Values, account string) []string {
	h := r.Header
	date := h.Get("Date")
	if h.Get("x-ms-date") != "" {
		date = ""
	}
	length := ""
	if r.ContentLength > 0 {
		length = strconv.FormatInt(r.ContentLength, 10)
	}
	head := strings.Join([]string{
		r.Method, h.Get("Content-Encoding"), h.Get("Content-Language"), length, h.Get("Content-MD5"), h.Get("Content-Type"), date,
		h.Get("If-Modified-Since"), h.Get("If-Match"), h.Get("If-None-Match"), h.Get("If-Unmodified-Since"), h.Get("Range"),
	}, "\n") + "\n"
	return withHeaders(head, h, canonicalResource(r, query, account))
}

// stringsToSignLite are those of SharedKeyLite.
func stringsToSignLite(r *http.Request, query url.Values, account string) []string {
	h := r.Header
	date := h.Get("Date")
	if h.Get("x-ms-date") != "" {
		date = ""
	}
	head := strings.Join([]string{r.Method, h.Get("Content-MD5"), h.Get("Content-Type"), date}, "\n") + "\n"
	resource := "/" + account + rawPath(r)
	if comp := query.Get("comp"); comp != "" {
		resource += "?comp=" + comp
	}
	return withHeaders(head, h, resource)
}

func withHeaders(head string, h http.Header, resource string) []string {
	plain := canonicalHeaders(h, strings.Compare)
	byWeight := canonicalHeaders(h, compareByWeight)
	texts := []string{head + plain + resource}
	if byWeight != plain {
		texts = append(texts, head+byWeight+resource)
	}
	return texts
}

// canonicalHeaders are the headers of the service, in small letters and in order, each with
// a line of its own.
func canonicalHeaders(h http.Header, order func(a, b string) int) string {
	values := map[string]string{}
	var names []string
	for name, all := range h {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-ms-") {
			names = append(names, lower)
			values[lower] = strings.Join(all, ",")
		}
	}
	slices.SortFunc(names, order)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name + ":" + values[name] + "\n")
	}
	return b.String()
}

// compareByWeight is the order of newer libraries, which is that of the service: hyphens count only
// where names are alike without them, and signs come before digits, digits before letters.
func compareByWeight(a, b string) int {
	if order := slices.Compare(weights(a), weights(b)); order != 0 {
		return order
	}
	for i := range min(len(a), len(b)) {
		if order := cmp.Compare(slightWeight(a[i]), slightWeight(b[i])); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

// slightWeight is that of the signs that count only then.
func slightWeight(c byte) int { return strings.IndexByte("'-", c) }

func weights(name string) []int {
	list := make([]int, 0, len(name))
	for _, c := range []byte(name) {
		switch {
		case c == '-' || c == '\'':
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			list = append(list, 0x200+int(c))
		case c == '+':
			list = append(list, 0x1ff)
		default:
			list = append(list, int(c))
		}
	}
	return list
}

// canonicalResource is the account and the path as it is written in the request: in a URL
// that has the account in its path it is there twice. Then comes the query, decoded.
func canonicalResource(r *http.Request, query url.Values, account string) string {
	var b strings.Builder
	b.WriteString("/" + account + rawPath(r))
	for _, name := range slices.Sorted(maps.Keys(query)) {
		b.WriteString("\n" + name + ":" + query.Get(name))
	}
	return b.String()
}
