package server

import "ngxlab/lab"

// brpcExample is the folder of the HTTP server among brpc's examples.
const brpcExample = "example/http_c++"

// brpc completes a recipe of the HTTP server among brpc's examples. From CMakeLists.txt, src/CMakeLists.txt and
// example/http_c++ of brpc 1.12: the target brpc-static leaves the library in output/lib of the build's folder, where
// the example looks for it below the source; its server wants a certificate at its start, which stands beside it.
func brpc(r lab.Recipe) lab.Recipe {
	if len(r.Make) == 0 {
		r.Make = [][]string{
			{"cmake", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release"},
			{"sh", "-c", `exec cmake --build build --target brpc-static -- -j"$(nproc)"`},
			{"cmake", "-S", brpcExample, "-B", brpcExample + "/build", "-DCMAKE_BUILD_TYPE=Release"},
			{"cmake", "--build", brpcExample + "/build", "--target", "http_server"},
			{"cp", brpcExample + "/cert.pem", brpcExample + "/key.pem", "."},
		}
		r.Keep = united([]string{"cert.pem", "key.pem"}, r.Keep)
	}
	if r.Binary == "" {
		r.Binary = brpcExample + "/build/http_server"
	}
	if r.Command == nil {
		r.Command = brpcCommand()
	}
	r.Packages = united(united([]string{
		"cmake", "g++", "make", "libgflags-dev", "libprotobuf-dev", "libprotoc-dev", "protobuf-compiler", "libleveldb-dev", "libssl-dev", "zlib1g-dev",
	}, toFetch(r)), r.Packages)
	return r
}

// brpcCommand starts the server, whose flags are gflags of example/http_c++/http_server.cpp. Its service Echo of HttpService
// answers at /HttpService/Echo; brpc counts the requests of each method in a variable that is named after the port and
// the method, which /vars prints for a console (docs/en/vars.md).
func brpcCommand() *lab.ServerCommand {
	return &lab.ServerCommand{
		Start: []string{"{binary}", "-port={port}", "-certificate={build}/cert.pem", "-private_key={build}/key.pem"},
		Ready: "/HttpService/Echo",
		Count: &lab.Count{URL: "/vars/*http_service_echo_count?console=1", Pattern: `http_service_echo_count : (\d+)`},
	}
}
