// Command peer-fasthttp is fasthttp: two constant responses, and the files of a folder.
package main

import (
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"
)

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/valyala/fasthttp" {
				return "fasthttp " + module.Version + ", " + runtime.Version()
			}
		}
	}
	return "unknown"
}

func main() {
	if len(os.Args) != 3 {
		fmt.Println(version())
		return
	}
	// The cache outlives any run.
	files := &fasthttp.FS{Root: os.Args[2], AcceptByteRange: true, CacheDuration: 5 * time.Minute}
	file := files.NewRequestHandler()
	handler := func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.Path()) {
		case "/plaintext":
			ctx.SetContentType("text/plain")
			ctx.SetBodyString("Hello, World!")
		case "/json":
			ctx.SetContentType("application/json")
			ctx.SetBodyString(`{"message":"Hello, World!"}`)
		default:
			file(ctx)
		}
	}
	server := &fasthttp.Server{Handler: handler, Concurrency: 19_000, IdleTimeout: 5 * time.Minute}
	log.Fatal(server.ListenAndServe(os.Args[1]))
}
