package azureblob

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// An account's signature opens what it names, until it ends.
func TestAccountSignatures(t *testing.T) { // H9
	y := newYard(t)
	y.container("box")
	use := func(types sas.AccountResourceTypes, permissions sas.AccountPermissions, until time.Duration) *service.Client {
		t.Helper()
		query, err := y.service().GetSASURL(types, permissions, time.Now().Add(until), nil)
		testkit.Must(t, err)
		client, err := service.NewClientWithNoCredential(query, &service.ClientOptions{ClientOptions: y.options()})
		testkit.Must(t, err)
		return client
	}
	all := sas.AccountResourceTypes{Service: true, Container: true, Object: true}
	put := func(client *service.Client, name string) error {
		_, err := client.NewContainerClient("box").NewBlockBlobClient(name).Upload(t.Context(), streaming.NopCloser(strings.NewReader("x")), nil)
		return err
	}
	full := use(all, sas.AccountPermissions{Read: true, Write: true, Delete: true, List: true, Create: true}, time.Hour)
	testkit.Must(t, put(full, "b"))
	_, err := full.NewListContainersPager(nil).NextPage(t.Context())
	testkit.Must(t, err)
	_, err = full.NewContainerClient("other").Create(t.Context(), nil)
	testkit.Must(t, err)

	wantCode(t, put(use(all, sas.AccountPermissions{Read: true}, time.Hour), "b"), bloberror.AuthorizationPermissionMismatch)
	wantCode(t, put(use(sas.AccountResourceTypes{Container: true}, sas.AccountPermissions{Write: true}, time.Hour), "b"), bloberror.AuthorizationResourceTypeMismatch)
	wantCode(t, put(use(all, sas.AccountPermissions{Write: true}, -time.Minute), "b"), bloberror.AuthenticationFailed)
	creator := use(all, sas.AccountPermissions{Create: true}, time.Hour)
	testkit.Must(t, put(creator, "new"))
	wantCode(t, put(creator, "new"), bloberror.UnauthorizedBlobOverwrite)
	_, err = creator.NewContainerClient("box").NewBlobClient("new").Delete(t.Context(), nil)
	wantCode(t, err, bloberror.AuthorizationPermissionMismatch)
}

// A signature for a container or a blob opens that one.
func TestServiceSignatures(t *testing.T) { // H9
	y := newYard(t)
	y.container("box")
	y.container("other")
	// Where the path has the account in its second segment this client would sign for a
	// container of that name, so that it is told the short form.
	short, err := service.NewClientFromConnectionString(strings.Replace(y.connection(), "/blob/eventyard", "/blob", 1), &service.ClientOptions{ClientOptions: y.options()})
	testkit.Must(t, err)
	box := short.NewContainerClient("box")
	_, err = box.NewBlockBlobClient("b/1").Upload(t.Context(), streaming.NopCloser(strings.NewReader("x")), nil)
	testkit.Must(t, err)
	options := &container.ClientOptions{ClientOptions: y.options()}

	address, err := box.GetSASURL(sas.ContainerPermissions{Read: true, Write: true, List: true}, time.Now().Add(time.Hour), nil)
	testkit.Must(t, err)
	shared, err := container.NewClientWithNoCredential(address, options)
	testkit.Must(t, err)
	_, err = shared.NewBlockBlobClient("b/1").Upload(t.Context(), streaming.NopCloser(strings.NewReader("y")), nil)
	testkit.Must(t, err)
	page, err := shared.NewListBlobsFlatPager(nil).NextPage(t.Context())
	if err != nil || len(page.Segment.BlobItems) != 1 {
		t.Errorf("the list is %+v, %v", page, err)
	}
	_, err = shared.NewBlobClient("b/1").Delete(t.Context(), nil)
	wantCode(t, err, bloberror.AuthorizationPermissionMismatch)
	_, err = shared.Delete(t.Context(), nil) // no signature for a container can do that
	wantCode(t, err, bloberror.AuthorizationFailure)
	elsewhere, err := container.NewClientWithNoCredential(strings.Replace(address, "/box?", "/other?", 1), options)
	testkit.Must(t, err)
	_, err = elsewhere.NewListBlobsFlatPager(nil).NextPage(t.Context())
	wantCode(t, err, bloberror.AuthenticationFailed)

	address, err = box.NewBlockBlobClient("b/1").GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	testkit.Must(t, err)
	one, err := blockblob.NewClientWithNoCredential(address, &blockblob.ClientOptions{ClientOptions: y.options()})
	testkit.Must(t, err)
	testkit.Equal(t, fetch(t, one, 0, 0), "y", "the blob")
	_, err = one.SetMetadata(t.Context(), nil, nil)
	wantCode(t, err, bloberror.AuthorizationPermissionMismatch)
	another, err := blockblob.NewClientWithNoCredential(strings.Replace(address, "b%2F1", "b%2F2", 1), &blockblob.ClientOptions{ClientOptions: y.options()})
	testkit.Must(t, err)
	_, err = another.GetProperties(t.Context(), nil)
	wantCode(t, err, bloberror.AuthenticationFailed)
}

// What a signature says besides is kept to.
func TestTermsOfSignatures(t *testing.T) { // H9
	y := newYard(t)
	_, err := y.container("box").NewBlockBlobClient("b").Upload(t.Context(), streaming.NopCloser(strings.NewReader("x")), nil)
	testkit.Must(t, err)
	soon, past := time.Now().Add(time.Hour).UTC(), time.Now().Add(-time.Hour).UTC()
	stamp := func(t time.Time) string { return t.Format("2006-01-02T15:04:05Z") }
	for _, test := range []struct {
		name   string
		change map[string]string
		status int
	}{
		{"as it is", nil, 200},
		{"of an older version", map[string]string{"sv": "2019-02-02"}, 200},
		{"of a version that is still older", map[string]string{"sv": "2016-05-31"}, 200},
		{"of a version that is too old", map[string]string{"sv": "2014-02-14"}, 403},
		{"without a version", map[string]string{"sv": ""}, 403},
		{"that begins later", map[string]string{"st": stamp(soon)}, 403},
		{"that has begun", map[string]string{"st": stamp(past)}, 200},
		{"that has ended", map[string]string{"se": stamp(past)}, 403},
		{"that ends at a minute", map[string]string{"se": soon.Format("2006-01-02T15:04Z")}, 200},
		{"that ends at a day", map[string]string{"se": soon.AddDate(0, 0, 2).Format("2006-01-02")}, 200},
		{"without an end", map[string]string{"se": ""}, 403},
		{"for this address", map[string]string{"sip": "127.0.0.1"}, 200},
		{"for a range with it", map[string]string{"sip": "127.0.0.0-127.0.0.9"}, 200},
		{"for another", map[string]string{"sip": "10.0.0.1"}, 403},
		{"for https", map[string]string{"spr": "https"}, 200},
		{"for a protocol that there is not", map[string]string{"spr": "ftp"}, 403},
		{"for a snapshot", map[string]string{"sr": "bs"}, 403},
		{"by a stored policy", map[string]string{"si": "policy"}, 403},
		{"by a user", map[string]string{"skoid": "x"}, 403},
		{"for another type of content", map[string]string{"rsct": "text/html"}, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := url.Values{"sv": {"2022-11-02"}, "sr": {"b"}, "sp": {"r"}, "se": {stamp(soon)}}
			for name, value := range test.change {
				q.Set(name, value)
			}
			q.Set("sig", sum(t, y.key(), documentedText(q, "/blob/eventyard/box/b")))
			got := y.ask("GET", "/blob/eventyard/box/b?"+q.Encode(), nil, nil)
			if got.StatusCode != test.status {
				t.Errorf("status %d, want %d: %s", got.StatusCode, test.status, text(t, got))
			}
			if kind := test.change["rsct"]; kind != "" && got.Header.Get("Content-Type") != kind {
				t.Errorf("the content's type is %q", got.Header.Get("Content-Type"))
			}
			q.Set("sp", "rw") // which is not what was signed
			testkit.Equal(t, y.ask("GET", "/blob/eventyard/box/b?"+q.Encode(), nil, nil).StatusCode, 403,
				"changed, status")
		})
	}
}

// documentedText is what is signed for a container or blob, by the documented rule.
func documentedText(q url.Values, resource string) string {
	names := "sp st se RESOURCE si sip spr sv sr snapshot ses rscc rscd rsce rscl rsct"
	switch {
	case q.Get("sv") < "2018-11-09":
		names = "sp st se RESOURCE si sip spr sv rscc rscd rsce rscl rsct"
	case q.Get("sv") < "2020-12-06":
		names = "sp st se RESOURCE si sip spr sv sr snapshot rscc rscd rsce rscl rsct"
	}
	var fields []string
	for _, name := range strings.Fields(names) {
		if name == "RESOURCE" {
			fields = append(fields, resource)
			continue
		}
		fields = append(fields, q.Get(name))
	}
	return strings.Join(fields, "\n")
}

func TestWhoIsNotLetIn(t *testing.T) { // H9
	y := newYard(t)
	y.container("box")
	const path = "/blob/eventyard/box?restype=container"
	at := func(off time.Duration) map[string]string {
		return map[string]string{"x-ms-date": time.Now().Add(off).UTC().Format(http.TimeFormat)}
	}
	header := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", value) }
	}
	for _, test := range []struct {
		name    string
		path    string
		headers map[string]string
		sign    func(*http.Request)
		status  int
		code    string
	}{
		{"the account's key", path, nil, y.own(), 200, ""},
		{"a clock that is a little off", path, at(14 * time.Minute), y.own(), 200, ""},
		{"a request of long ago", path, at(-16 * time.Minute), y.own(), 403, "AuthenticationFailed"},
		{"a request of later", path, at(16 * time.Minute), y.own(), 403, "AuthenticationFailed"},
		{"a date that is none", path, map[string]string{"x-ms-date": "today"}, y.own(), 403, "AuthenticationFailed"},
		{"nothing", path, nil, func(*http.Request) {}, 401, "NoAuthenticationInformation"},
		{"another's key", path, nil, y.signed(Account, DevelopmentAccountKey), 403, "AuthenticationFailed"},
		{"the key of the other account", path, nil, y.signed(DevelopmentAccount, DevelopmentAccountKey), 403, "AuthenticationFailed"},
		{"the development account", "/blob/devstoreaccount1?comp=list", nil, y.signed(DevelopmentAccount, DevelopmentAccountKey), 200, ""},
		{"a path without the account", "/blob/box?restype=container", nil, y.own(), 200, ""},
		{"no path", "/blob?comp=list", nil, y.own(), 200, ""},
		{"the account in the host", "/box?restype=container", nil, func(r *http.Request) { r.Host = "eventyard.blob.localhost:1"; y.own()(r) }, 200, ""},
		{"half a signature", path, nil, header("SharedKey eventyard"), 400, "InvalidAuthenticationInfo"},
		{"no signature", path, nil, header("SharedKey eventyard:%%%"), 403, "AuthenticationFailed"},
		{"another scheme", path, nil, header("Basic x"), 400, "InvalidAuthenticationInfo"},
		{"a name of elsewhere", path, nil, func(r *http.Request) { y.own()(r); r.Host = "evil.example" }, 403, "AuthorizationFailure"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := y.ask("GET", test.path, nil, test.headers, test.sign)
			if got.StatusCode != test.status || got.Header.Get("x-ms-error-code") != test.code {
				t.Errorf("got %d %s, want %d %s: %s", got.StatusCode, got.Header.Get("x-ms-error-code"), test.status, test.code, text(t, got))
			}
		})
	}
	t.Run("a page of elsewhere", func(t *testing.T) {
		got := y.ask("PUT", path, nil, map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, y.own())
		testkit.Equal(t, got.StatusCode, 403, "status")
	})
}

func TestSharedKeyLite(t *testing.T) { // H9
	y := newYard(t)
	y.container("box")
	lite := func(r *http.Request) {
		text := "GET\n\n\n\n" + canonicalHeaders(r.Header, strings.Compare) + "/eventyard/blob/eventyard/box?comp=list"
		r.Header.Set("Authorization", "SharedKeyLite eventyard:"+sum(t, y.key(), text))
	}
	for query, status := range map[string]int{
		"restype=container&comp=list": 200, "restype=container&COMP=list": 200, "restype=container": 403, "restype=container&Comp=acl": 403,
	} {
		if got := y.ask("GET", "/blob/eventyard/box?"+query, nil, nil, lite); got.StatusCode != status {
			t.Errorf("%s: status %d: %s", query, got.StatusCode, text(t, got))
		}
	}
}

// A key made anew is good at once, and the old one is not, nor a signature made with it; the
// secondary one goes on.
func TestKeysMadeAnew(t *testing.T) { // H9
	y := newYard(t)
	const path = "/blob/eventyard?comp=list"
	y.container("box")
	list := func(key string) int {
		signature, err := SignContainer(key, "box", "l", time.Now().Add(time.Hour))
		testkit.Must(t, err)
		return y.ask("GET", "/blob/eventyard/box?restype=container&comp=list&"+signature, nil, nil).StatusCode
	}
	before := y.registry.Account()
	testkit.Must(t, testkit.Err(y.registry.RegenerateAccount(t.Context(), access.PrimaryKey)))
	for key, status := range map[string]int{before.Primary: 403, before.Secondary: 200, y.key(): 200} {
		testkit.Equal(t, y.ask("GET", path, nil, nil, y.signed(Account, key)).StatusCode, status, "status")
		testkit.Equal(t, list(key), status, "status by a signature")
	}
}

// R1: the account's keys are its own. Those of the root policy open blobs only as long as an
// operator lets them, for connection strings from before.
func TestRootKeys(t *testing.T) {
	y := newYard(t)
	root, err := y.registry.Policy("", auth.RootPolicy)
	testkit.Must(t, err)
	status := func() int {
		return y.ask("GET", "/blob/eventyard?comp=list", nil, nil, y.signed(Account, root.Secondary)).StatusCode
	}
	testkit.Equal(t, status(), 403, "in a new yard")
	testkit.Must(t, testkit.Err(y.registry.AllowRootKeys(t.Context(), true)))
	testkit.Equal(t, status(), 200, "where they are allowed")
	testkit.Must(t, testkit.Err(y.registry.AllowRootKeys(t.Context(), false)))
	testkit.Equal(t, status(), 403, "when they are turned off")
	testkit.Equal(t, y.ask("GET", "/blob/eventyard?comp=list", nil, nil, y.own()).StatusCode, 200, "by the account's own")
}

// R1: a signature for a container is good there, for what it permits, and nowhere else; official
// clients take it from a connection string.
func TestSignaturesForAContainer(t *testing.T) {
	y := newYard(t)
	y.container("other")
	client := func(permissions string) *container.Client {
		signature, err := SignContainer(y.key(), "checkpoints", permissions, time.Now().Add(time.Hour))
		testkit.Must(t, err)
		text := "DefaultEndpointsProtocol=https;AccountName=eventyard;SharedAccessSignature=" + signature + ";BlobEndpoint=" + y.url() + ";"
		c, err := azblob.NewClientFromConnectionString(text, &azblob.ClientOptions{ClientOptions: y.options()})
		testkit.Must(t, err)
		return c.ServiceClient().NewContainerClient("checkpoints")
	}
	y.container("checkpoints")
	all := client("rcwdl")
	_, err := all.NewBlockBlobClient("a").UploadBuffer(t.Context(), []byte("x"), nil)
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(all.NewListBlobsFlatPager(nil).NextPage(t.Context())))
	testkit.Must(t, testkit.Err(all.NewBlobClient("a").GetProperties(t.Context(), nil)))
	// A store that creates its container if it is not there is refused even where it is, as by Azure.
	for _, c := range []*container.Client{all, client("c"), client("rl")} {
		wantCode(t, testkit.Err(c.Create(t.Context(), nil)), bloberror.AuthorizationFailure)
		wantCode(t, testkit.Err(c.GetProperties(t.Context(), nil)), bloberror.AuthorizationFailure)
	}
	_, err = client("rl").NewBlockBlobClient("a").UploadBuffer(t.Context(), []byte("y"), nil)
	wantCode(t, err, "AuthorizationPermissionMismatch")
	signature, err := SignContainer(y.key(), "checkpoints", "rcwdl", time.Now().Add(time.Hour))
	testkit.Must(t, err)
	for _, path := range []string{"/blob/eventyard/other?restype=container&comp=list", "/blob/eventyard/other/a?", "/blob/eventyard?comp=list", "/blob/eventyard/checkpoints?restype=container"} {
		testkit.Equal(t, y.ask("GET", path+"&"+signature, nil, nil).StatusCode, 403, "%s", path)
	}
	expired, err := SignContainer(y.key(), "checkpoints", "rcwdl", time.Now().Add(-time.Hour))
	testkit.Must(t, err)
	testkit.Equal(t, y.ask("GET", "/blob/eventyard/checkpoints?restype=container&comp=list&"+expired, nil, nil).StatusCode, 403, "when it has expired")
	for _, bad := range [][3]string{{"", "box", "r"}, {"no base64!", "box", "r"}, {y.key(), "Box", "r"}, {y.key(), "a/b", "r"}, {y.key(), "box", ""}, {y.key(), "box", "rx"}} {
		if signature, err := SignContainer(bad[0], bad[1], bad[2], time.Now()); err == nil {
			t.Errorf("%q: signed as %s", bad, signature)
		}
	}
}

// Outside of development the account that everybody knows is not there.
func TestTheDevelopmentAccountIsForDevelopment(t *testing.T) {
	y := newYard(t, func(_ *Config, a *access.Config) { a.Development, a.AnyBearer = false, false })
	got := y.ask("GET", "/blob/devstoreaccount1?comp=list", nil, nil, y.signed(DevelopmentAccount, DevelopmentAccountKey))
	testkit.Equal(t, got.StatusCode, 404, "status")
}

// listener is a verifier whose tokens may only listen.
type listener struct{}

func (listener) Verify(_ context.Context, token string) (auth.Grant, error) {
	if token != "listens" {
		return auth.Grant{}, auth.ErrSignature
	}
	return auth.Grant{Scopes: []auth.Scope{{Rights: auth.Listen}}}, nil
}

func TestBearersNeedManage(t *testing.T) { // H9
	y := newYard(t, func(_ *Config, a *access.Config) { a.AnyBearer, a.Bearer = false, listener{} })
	for token, status := range map[string]int{"listens": 403, "other": 401} {
		got := y.ask("GET", "/blob/eventyard?comp=list", nil, map[string]string{"Authorization": "Bearer " + token})
		testkit.Equal(t, got.StatusCode, status, "%s: status", token)
	}
}

// A client of the development account needs nothing but its well-known connection string.
func TestTheDevelopmentAccountByTheOfficialClient(t *testing.T) {
	y := newYard(t)
	client, err := azblob.NewClientFromConnectionString("DefaultEndpointsProtocol=https;AccountName="+DevelopmentAccount+";AccountKey="+DevelopmentAccountKey+
		";BlobEndpoint="+y.server.URL+"/blob/"+DevelopmentAccount, &azblob.ClientOptions{ClientOptions: y.options()})
	testkit.Must(t, err)
	_, err = client.CreateContainer(t.Context(), "box", nil)
	testkit.Must(t, err)
	_, err = client.UploadStream(t.Context(), "box", "b", bytes.NewReader([]byte("x")), nil)
	testkit.Must(t, err)
	got, err := client.DownloadStream(t.Context(), "box", "b", nil)
	testkit.Must(t, err)
	if all, err := io.ReadAll(got.Body); err != nil || string(all) != "x" {
		t.Errorf("got %q, %v", all, err)
	}
	_, err = y.service().NewContainerClient("box").GetProperties(t.Context(), nil) // the other account's
	wantCode(t, err, bloberror.ContainerNotFound)
}
